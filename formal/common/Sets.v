(** Sets of numbers below N, and systems of fewer equations than unknowns. *)

Require Import Reals Lra Lia Bool Arith.
From Formal.common Require Import Sums.
Open Scope R_scope.

Fixpoint count (N : nat) (y : nat -> bool) : nat :=
  match N with O => O | S m => (count m y + if y m then 1 else 0)%nat end.

Definition without (y : nat -> bool) (p i : nat) : bool := andb (y i) (negb (i =? p)).

Lemma count_ext N y z : (forall i, (i < N)%nat -> y i = z i) -> count N y = count N z.
Proof. induction N; intro H; simpl; [reflexivity|]. rewrite IHN by (intros; apply H; lia). now rewrite H by lia. Qed.

Lemma count_all N : count N (fun _ => true) = N.
Proof. induction N; simpl; [reflexivity|]. rewrite IHN. lia. Qed.

Lemma count_without N y p : (p < N)%nat -> y p = true -> (count N (without y p) + 1 = count N y)%nat.
Proof.
  induction N; intros L Y; [lia|]. simpl. unfold without at 2. destruct (Nat.eq_dec p N) as [->|D].
  - rewrite Nat.eqb_refl, andb_false_r, Y. rewrite (count_ext N (without y N) y); [lia|].
    intros i Li. unfold without. replace (i =? N) with false by (symmetry; apply Nat.eqb_neq; lia). apply andb_true_r.
  - replace (N =? p) with false by (symmetry; apply Nat.eqb_neq; lia). rewrite andb_true_r.
    pose proof (IHN ltac:(lia) Y). lia.
Qed.

Lemma count_pick N y : (0 < count N y)%nat -> exists p, (p < N)%nat /\ y p = true.
Proof.
  induction N; simpl; intro H; [lia|]. destruct (y N) eqn:E; [exists N; split; [lia|exact E]|].
  destruct IHN as [p [L Y]]; [lia|]. exists p. split; [lia|exact Y].
Qed.

(** A subset of each smaller size. *)
Lemma subset N y m : (m <= count N y)%nat -> exists z, count N z = m /\ forall i, z i = true -> y i = true.
Proof.
  revert m. induction N; intros m H; simpl in *.
  - exists (fun _ => false). split; [lia|discriminate].
  - destruct (y N) eqn:E.
    + destruct m as [|m].
      * exists (fun _ => false). split; [|discriminate]. clear. induction N; simpl; lia.
      * destruct (IHN m) as [z [C I]]; [lia|]. exists (fun i => if i =? N then true else z i). split.
        -- rewrite Nat.eqb_refl, (count_ext N (fun i => if i =? N then true else z i) z); [lia|]. intros i Li.
           now replace (i =? N) with false by (symmetry; apply Nat.eqb_neq; lia).
        -- intros i H1. cbv beta in H1. destruct (i =? N) eqn:Q; [|now apply I]. apply Nat.eqb_eq in Q. now rewrite Q.
    + destruct (IHN m) as [z [C I]]; [lia|]. exists z. split; [|exact I].
      destruct (z N) eqn:Q; [|simpl; lia]. apply I in Q. congruence.
Qed.

Lemma Sum_count N (y : nat -> bool) : Sum N (fun j => if y j then 1 else 0) = INR (count N y).
Proof. induction N; simpl; [reflexivity|]. rewrite IHN, plus_INR. destruct (y N); reflexivity. Qed.

(** m equations leave a solution that is not zero among more than m unknowns. *)
Lemma underdetermined m : forall N y (B : nat -> nat -> R), (m < count N y)%nat ->
  exists x, (exists i, (i < N)%nat /\ x i <> 0) /\ (forall i, y i = false -> x i = 0) /\
  forall e, (e < m)%nat -> Sum N (fun i => B e i * x i) = 0.
Proof.
  induction m; intros N y B H.
  - destruct (count_pick N y H) as [p [L Y]]. exists (fun i => kron i p). repeat split; [| |lia].
    + exists p. split; [exact L|]. rewrite kron_same. lra.
    + intros i F. apply kron_other. intros ->. congruence.
  - destruct (differ (fun i => if y i then B m i else 0) (fun _ => 0) N) as [[p [L D]]|Z].
    + destruct (y p) eqn:Y; [|now destruct D].
      destruct (IHm N (without y p) (fun e i => B e i - B e p * B m i / B m p)) as [x [[i [Li Ni]] [Off E]]].
      { pose proof (count_without N y p L Y). lia. }
      assert (Xp : x p = 0) by (apply Off; unfold without; now rewrite Nat.eqb_refl, andb_false_r).
      set (s := Sum N (fun i => B m i * x i)).
      exists (fun i => x i - kron i p * (s / B m p)). repeat split.
      * exists i. split; [exact Li|]. rewrite kron_other; [lra|]. intros ->. now apply Ni.
      * intros k F. rewrite Off by (unfold without; now rewrite F). rewrite kron_other; [ring|]. intros ->. congruence.
      * intros e Le. rewrite (Sum_ext N _ (fun i => B e i * x i - kron i p * (B e i * (s / B m p)))) by (intros; ring).
        rewrite Sum_minus, (Sum_kron N p (fun i => B e i * (s / B m p)) L).
        destruct (Nat.eq_dec e m) as [->|Ne].
        -- fold s. field. exact D.
        -- pose proof (E e ltac:(lia)) as Q. cbv beta in Q.
           rewrite (Sum_ext N _ (fun i => B e i * x i - B e p / B m p * (B m i * x i))) in Q by (intros; field; exact D).
           rewrite Sum_minus, Sum_scal in Q. fold s in Q. rewrite <- Q. field. exact D.
    + destruct (IHm N y B) as [x [NZ [Off E]]]; [lia|]. exists x. repeat split; [exact NZ|exact Off|].
      intros e Le. destruct (Nat.eq_dec e m) as [->|Ne]; [|apply E; lia].
      apply Sum_zero. intros i Li. destruct (y i) eqn:Y; [|rewrite Off by exact Y; ring].
      pose proof (Z i Li) as Q. cbv beta in Q. rewrite Y in Q. rewrite Q. ring.
Qed.
